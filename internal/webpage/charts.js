'use strict';

// heed.chart draws curves in an element. The chart has the element's width and the page's colours. It returns an object whose update
// method takes another spec. A spec has
//   title, label   title of the chart, and name of x
//   x              rising numbers, for all series without their own x
//   series         [{name, values, x, line, faint}], with one value per x; null is a gap. line is the number of the curve's colour, by default
//                  the series' index; a faint curve is thin and pale. Curves after the sixth are dashed, and after the twelfth dotted.
//   marks          [{x, label}], vertical lines; optional
//   log            whether y is logarithmic
heed.chart = (element, spec) => {
	const color = name => getComputedStyle(element).getPropertyValue(name).trim();
	const colours = 6;
	const line = i => '--line-' + (spec.series[i - 1].line ?? i - 1) % colours; // i counts from 1, as in uPlot
	const dashes = [{style: 'solid'}, {style: 'dashed', lengths: [6, 4]}, {style: 'dotted', lengths: [2, 3]}];
	const dash = i => dashes[Math.floor((i - 1) / colours) % dashes.length];
	const font = '12px system-ui, sans-serif';
	const shown = (u, v, series, at) => heed.number(at == null ? u.data[series].findLast(v => v != null) : v); // the last value if there is no pointer
	let plot, names;

	const aligned = () => uPlot.join(spec.series.map(s => [
		s.x || spec.x, s.values.map(v => spec.log && v <= 0 ? null : v),
	]), spec.series.map(() => [2])); // 2: null stays a gap

	const drawMarks = u => {
		const c = u.ctx, {left, top, width, height} = u.bbox, px = devicePixelRatio;
		c.save();
		c.font = 11 * px + 'px system-ui, sans-serif';
		c.fillStyle = c.strokeStyle = color('--muted');
		c.setLineDash([4 * px, 3 * px]);
		c.lineWidth = px;
		(spec.marks || []).forEach((mark, i) => {
			if (mark.x < u.scales.x.min || mark.x > u.scales.x.max) return;
			const x = Math.round(u.valToPos(mark.x, 'x', true));
			c.beginPath();
			c.moveTo(x, top);
			c.lineTo(x, top + height);
			c.stroke();
			const before = x + c.measureText(mark.label).width + 5 * px > left + width;
			c.textAlign = before ? 'right' : 'left';
			c.fillText(mark.label, x + (before ? -4 : 4) * px, top + (11 + 14 * i) * px);
		});
		c.restore();
	};

	const whole = Array.from({length: 30}, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3)); // steps between ticks of x
	const axis = more => Object.assign({
		stroke: () => color('--muted'), font, grid: {stroke: () => color('--grid'), width: 1}, ticks: {show: false}, gap: 6,
	}, more);
	const options = () => ({
		title: spec.title, width: element.clientWidth, height: 240,
		scales: {
			x: {time: false, range: (u, min, max) => u.data[0].length === 1 ? [u.data[0][0] - 1, u.data[0][0] + 1] : [min ?? 0, max ?? 1]},
			y: {distr: spec.log ? 3 : 1},
		},
		axes: [
			axis({label: spec.label, labelFont: font, labelSize: 16, size: 24, incrs: whole,
				values: (u, ticks) => ticks.map(v => v < 0 ? null : heed.number(v))}),
			axis({values: (u, ticks) => ticks.map(v => v == null ? null : heed.number(v)),
				size: (u, texts) => 12 + 7 * Math.max(2, ...(texts || []).map(t => (t || '').length))}),
		],
		series: [{label: spec.label, value: shown}].concat(spec.series.map((s, i) => ({
			label: s.name, width: s.faint ? 1 : 2, alpha: s.faint ? 0.5 : 1, class: s.faint ? 'faint' : undefined, dash: dash(i + 1).lengths, value: shown,
			stroke: () => color(line(i + 1)), points: {fill: () => color('--page'), ...(s.values.length < 2 && {show: true})},
		}))),
		cursor: {y: false, sync: {key: spec.label}},
		legend: {markers: {width: 3, dash: (u, i) => dash(i).style, stroke: (u, i) => 'var(' + line(i) + ')', fill: () => 'none'}},
		hooks: {draw: [drawMarks]},
	});

	const make = () => {
		if (plot) plot.destroy();
		names = spec.series.map(s => s.name).join('\n');
		plot = new uPlot(options(), aligned(), element);
	};
	make();
	element.setAttribute('role', 'figure');
	element.setAttribute('aria-label', spec.title);
	new ResizeObserver(() => {
		if (element.clientWidth > 0 && element.clientWidth !== plot.width) plot.setSize({width: element.clientWidth, height: 240});
	}).observe(element);
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => plot.redraw());
	return {
		update(to) {
			const log = spec.log;
			spec = to;
			if (spec.log !== log || spec.series.map(s => s.name).join('\n') !== names) make();
			else plot.setData(aligned());
		},
	};
};
