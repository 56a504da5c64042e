'use strict';

// The page of a service: it asks the endpoints beside it, and shows what they answer as text.
(() => {
	const $ = id => document.getElementById(id);
	const make = (tag, text, className) => {
		const e = document.createElement(tag);
		e.textContent = text;
		if (className) e.className = className;
		return e;
	};

	// visible shows as an escape what a reader wouldn't see, or what would turn the text around.
	const visible = text => text.replace(/[^\P{C}\n\t]|[\u2028\u2029]/gu, c => '\\u{' + c.codePointAt(0).toString(16) + '}');

	const say = (text, wrong) => {
		$('said').textContent = visible(text);
		$('said').classList.toggle('wrong', Boolean(wrong));
	};

	// ask sends JSON, and returns the response of a success.
	const ask = async (path, request, signal) => {
		const response = await fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(request), signal});
		if (!response.ok) throw new Error((await response.json()).error);
		return response;
	};

	// doing runs a task of a button's, and says what went wrong.
	const doing = async (button, task) => {
		button.disabled = true;
		say('…');
		try {
			await task();
		} catch (e) {
			say(e.name === 'AbortError' ? 'Stopped.' : e.message, e.name !== 'AbortError');
		}
		button.disabled = false;
	};

	const look = (button, input) => doing(button, async () => {
		const data = await (await ask('attention', {input})).json();
		say('');
		$('figure').hidden = false;
		$('heading').textContent = visible(`${data.input} → ${data.answer}`);
		heed.attention($('attention'), data);
		$('heading').scrollIntoView({behavior: 'smooth'});
	});

	// predict answers the inputs, in a row each.
	const predict = async () => {
		const inputs = $('text').value.split('\n').filter(line => line !== '');
		const request = {inputs, scores: true};
		if ($('beam')) request.beam = $('beam').valueAsNumber;
		const {answers} = await (await ask('predict', request)).json();
		const table = document.createElement('table');
		const head = table.createTHead().insertRow();
		for (const title of ['Input', 'Answer', 'Probability', '']) head.append(make('th', title));
		const body = table.createTBody();
		answers.forEach((a, i) => {
			const row = body.insertRow();
			row.insertCell().append(make('bdi', visible(inputs[i])));
			if (a.error) {
				row.insertCell().append(make('span', visible(a.error), 'wrong'));
				row.cells[1].colSpan = 3;
				return;
			}
			row.insertCell().append(make('bdi', visible(a.answer)));
			if (a.unknown) row.cells[1].append(' ', make('small', '(has symbols that training never saw)', 'muted'));
			row.insertCell().append(a.log_prob === undefined ? '–' : `${heed.number(100 * Math.exp(a.log_prob))} %`);
			const button = make('button', 'Attention');
			button.addEventListener('click', () => look(button, inputs[i]));
			row.insertCell().append(button);
		});
		$('answers').replaceChildren(table);
		say('');
	};

	// write shows what is written as it comes: server-sent events, of which fetch makes text alone.
	const write = async stop => {
		const request = {prompt: $('text').value, tokens: $('tokens').valueAsNumber, temperature: $('temperature').valueAsNumber, seed: $('seed').valueAsNumber};
		const response = await ask('generate', request, stop.signal);
		const written = make('span', '');
		const pre = document.createElement('pre');
		pre.append(make('span', visible(request.prompt), 'muted'), written);
		$('answers').replaceChildren(pre);
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = '';
		for (;;) {
			const {value, done} = await reader.read();
			if (done) throw new Error('The service has gone.');
			const events = (rest + value).split('\n\n');
			rest = events.pop();
			for (const event of events) {
				const [name, data] = event.split('\n').map(line => line.slice(line.indexOf(': ') + 2));
				const of = JSON.parse(data);
				if (name === 'text') written.append(visible(of.text));
				else if (name === 'error') throw new Error(of.error);
				else return say({time: 'It has taken too long.', ending: 'The service ends.'}[of.reason] || '');
			}
		}
	};

	$('form').addEventListener('submit', e => {
		e.preventDefault();
		const stop = new AbortController();
		const button = $('stop');
		if (button) {
			button.hidden = false;
			button.onclick = () => stop.abort();
		}
		doing($('ask'), () => (button ? write(stop) : predict())).then(() => { if (button) button.hidden = true; });
	});
	if ($('look')) $('look').addEventListener('click', () => look($('look'), $('text').value));
})();
