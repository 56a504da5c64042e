'use strict';

// The page of a service: it sends requests to the endpoints and shows their answers as text.
(() => {
	const $ = id => document.getElementById(id);
	const make = (tag, text, className) => {
		const e = document.createElement(tag);
		e.textContent = text;
		if (className) e.className = className;
		return e;
	};

	// visible escapes characters that are invisible or change the direction of text.
	const visible = text => text.replace(/[^\P{C}\n\t]|[\u2028\u2029]/gu, c => '\\u{' + c.codePointAt(0).toString(16) + '}');

	const say = (text, wrong) => {
		$('said').textContent = visible(text);
		$('said').classList.toggle('wrong', Boolean(wrong));
	};

	// ask sends JSON and returns the response. It throws the error of a failed request.
	const ask = async (path, request, signal) => {
		const response = await fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(request), signal});
		if (!response.ok) throw new Error((await response.json()).error);
		return response;
	};

	// doing disables a button while its task runs, and shows the task's error.
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

	// predict shows a table with one row per input.
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
			if (a.unknown) row.cells[1].append(' ', make('small', '(the input has symbols that training never saw)', 'muted'));
			row.insertCell().append(a.log_prob === undefined ? '–' : `${heed.number(100 * Math.exp(a.log_prob))} %`);
			const button = make('button', 'Attention');
			button.addEventListener('click', () => look(button, inputs[i]));
			row.insertCell().append(button);
		});
		$('answers').replaceChildren(table);
		say('');
	};

	// write shows the generated text as it arrives, in server-sent events. EventSource can't send a POST, so this parses them.
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
			if (done) throw new Error('The service has disconnected.');
			const events = (rest + value).split('\n\n');
			rest = events.pop();
			for (const event of events) {
				const [name, data] = event.split('\n').map(line => line.slice(line.indexOf(': ') + 2));
				const values = JSON.parse(data);
				if (name === 'text') written.append(visible(values.text));
				else if (name === 'error') throw new Error(values.error);
				else return say({time: 'Stopped: the request took too long.', ending: 'Stopped: the service is about to end.'}[values.reason] || '');
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
