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

	const look = (button, text) => doing(button, async () => {
		const data = await (await ask('attention', {input: text})).json();
		say(data.cut ? 'The input is too long for the model. The map shows the part that it read.' : '');
		$('figure').hidden = false;
		const input = Array.from(data.input);
		$('heading').textContent = visible(`${input.slice(0, 100).join('')}${input.length > 100 ? '…' : ''} → ${data.answer}`);
		heed.attention($('attention'), data);
		$('heading').scrollIntoView({behavior: 'smooth'});
	});

	// share shows a probability in per cent.
	const share = p => (p === undefined ? '–' : p < 0.0001 ? '< 0.01 %' : `${(100 * p).toFixed(2)} %`);

	// marked returns an input with its spans marked. Spans count bytes of UTF-8.
	const marked = a => {
		const bytes = new TextEncoder().encode(a.input);
		const between = (start, end) => visible(new TextDecoder('utf-8', {ignoreBOM: true}).decode(bytes.subarray(start, end)));
		const shown = make('bdi', '', a.spans ? 'spans' : 'input');
		let last = 0;
		for (const {label, start, end} of a.spans || []) {
			const mark = make('mark', between(start, end));
			if (label) mark.append(make('b', visible(label)));
			shown.append(between(last, start), mark);
			last = end;
		}
		shown.append(between(last));
		return shown;
	};

	// predict shows a table. Each input has a row for its answer, then one for each further alternative.
	const predict = async () => {
		const text = $('text').value;
		let input = [text];
		if ($('second')) input = [[text, $('second').value].map(part => part.replaceAll('\t', ' ')).join('\t')];
		else if ($('lines').checked) input = text.split('\n').filter(line => line !== '');
		const request = {input};
		if ($('top')) request.top = $('top').valueAsNumber;
		if ($('beam')) request.beam = $('beam').valueAsNumber;
		const {answers} = await (await ask('predict', request)).json();
		const table = document.createElement('table');
		const head = table.createTHead().insertRow();
		const titles = $('top') ? ['Input', 'Answer', 'Probability'] : ['Input', 'Answer'];
		for (const title of titles) head.append(make('th', title, title === 'Probability' && 'number'));
		const body = table.createTBody();
		const cell = (row, className, ...children) => {
			const td = row.insertCell();
			td.className = className;
			td.append(...children);
			return td;
		};
		for (const a of answers) {
			const row = body.insertRow();
			const asked = cell(row, 'text', marked(a));
			if (a.error) {
				cell(row, 'text', make('span', visible(a.error), 'wrong')).colSpan = titles.length - 1;
				continue;
			}
			if (a.unknown) asked.append(make('small', 'It has symbols that training never saw.', 'muted'));
			if (a.cut) asked.append(make('small', 'It is too long: the model ignored a part of it.', 'muted'));
			const button = make('button', 'Attention');
			button.addEventListener('click', () => look(button, a.input));
			asked.append(button);
			cell(row, 'text', make('bdi', visible(String(a.answer))));
			if (!$('top')) continue;
			cell(row, 'number', share(a.probability));
			for (const other of a.alternatives.slice(1)) {
				const next = body.insertRow();
				cell(next, 'text muted', make('bdi', visible(other.answer)));
				cell(next, 'number muted', share(other.probability));
			}
			asked.rowSpan = a.alternatives.length;
		}
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
				else {
					const why = {time: 'Stopped: the request took too long.', ending: 'Stopped: the service is about to end.'}[values.reason] || '';
					return say(why + (values.cut ? ' The prompt is too long for the model: its beginning was ignored.' : ''));
				}
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
