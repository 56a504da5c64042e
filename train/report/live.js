'use strict';
// Draws the states of a run as they arrive.
{
	const $ = id => document.getElementById(id);
	const title = document.title;
	const charts = new Map(); // by title
	let chosen = false; // whether the reader has chosen a scale for the losses
	let now, checks = {values: {}, best: -1}; // values by name in the history

	const clock = s => {
		s = Math.round(s);
		const two = n => String(n).padStart(2, '0');
		return s < 3600 ? Math.floor(s / 60) + ':' + two(s % 60) : Math.floor(s / 3600) + ':' + two(Math.floor(s / 60) % 60) + ':' + two(s % 60);
	};
	const best = name => checks.values[name][checks.best];
	const whole = n => n.toLocaleString('en');
	const words = key => key.replaceAll('_', ' ').replaceAll(' f1', ' F1');

	const draw = (place, spec) => {
		spec.label = 'step';
		spec.series = spec.series.filter(s => s.values.some(v => v != null));
		if (spec.series.length === 0) return;
		spec.marks = checks.best < 0 ? [] : [{x: best('step'), label: 'best'}];
		if (charts.has(spec.title)) return charts.get(spec.title).update(spec);
		const element = document.createElement('div');
		element.style.order = place;
		$('charts').append(element);
		charts.set(spec.title, heed.chart(element, spec));
	};

	const drawAll = () => {
		if (!now || document.hidden) return;
		const series = (name, key, line) => ({name, x: checks.values.step || [], values: checks.values[key] || [], line});
		const both = name => [series('training', 'train_' + name, 0), series('validation', 'val_' + name, 1)];
		draw(0, {title: 'Loss', log: $('log').checked, series: [
			{...now.losses, line: 0, faint: true}, ...both('loss'),
		]});
		const names = Object.keys(checks.values).map(key => key.match(/^(?:train|val)_(?!loss$)(.+)/)?.[1]);
		for (const name of new Set(names.filter(Boolean))) {
			draw(1, {title: name[0].toUpperCase() + words(name.slice(1)), series: both(name)});
		}
		draw(2, {title: 'Learning rate', series: [series('learning rate', 'learning_rate')]});
		draw(3, {title: 'Gradient norm', series: [series('gradient norm', 'gradient_norm')]});
		draw(4, {title: 'Steps per second', series: [now.rates]});
	};

	const say = () => {
		const left = s => now.ended || s < 0 ? '' : ', ' + clock(s) + ' left';
		const taken = now.epoch * now.steps + now.step;
		const done = Math.floor(taken / now.steps);
		$('progress').hidden = false;
		$('of-run').textContent = 'Run: ' + whole(done) + (done === 1 ? ' epoch' : ' epochs') + ' done' +
			(now.epochs ? ' of ' + whole(now.epochs) + ' at most' : '') + ', ' + clock(now.seconds) + (now.ended ? '' : ' so far') + left(now.runLeft);
		$('run').hidden = now.epochs === 0;
		$('run').max = now.epochs * now.steps;
		$('run').value = taken;
		$('of-epoch').textContent = 'Epoch ' + whole(now.epoch) + ': step ' + whole(now.step) + ' of ' + whole(now.steps) +
			(now.rate && !now.ended ? ', ' + heed.number(now.rate) + ' steps per second' : '') + left(now.epochLeft) +
			(now.checkLeft && !now.ended ? '; next check in ' + clock(now.checkLeft) : '');
		$('epoch').max = now.steps;
		$('epoch').value = now.step;
		const named = key => words(key.replace('train_', 'training ').replace('val_', 'validation '));
		$('best').textContent = checks.best < 0 ? '' : (now.ended ? 'Best: ' : 'Best so far: ') + 'epoch ' + whole(best('epoch')) + ', step ' + whole(best('step')) + ': ' +
			Object.keys(checks.values).filter(key => /^(train|val)_/.test(key)).map(key => named(key) + '\u00a0' + heed.number(best(key))).join(', ');
		const state = now.ended ? 'Ended: ' + now.ended : 'Running';
		if ($('state').textContent !== state) $('state').textContent = state; // a screen reader reads every change aloud
		document.title = (now.ended ? 'Ended' : 'Epoch ' + whole(now.epoch)) + ' – ' + title;
	};

	const events = new EventSource('events');
	events.addEventListener('checks', e => {
		checks = JSON.parse(e.data);
		if (!chosen) $('log').checked = checks.log;
	});
	events.addEventListener('now', e => {
		const next = JSON.parse(e.data);
		if (now && now.run !== next.run) return location.reload(); // another run now has this address
		now = next;
		if (now.ended) events.close();
		say();
		drawAll();
	});
	events.onerror = () => {
		$('state').textContent = events.readyState === EventSource.CLOSED ? 'This address no longer sends a run. Reload this page to try again.' :
			'The run can\'t be reached. This page keeps trying.';
	};
	$('log').addEventListener('change', () => {
		chosen = true;
		drawAll();
	});
	document.addEventListener('visibilitychange', drawAll);
}
