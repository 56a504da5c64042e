'use strict';

// heed.attention(element, data) fills an element with an interactive view of attention weights. data has
//   key      explanation of unusual labels; optional
//   layers   [{name, meaning, rows, columns, heads}]: a label for each query (rows) and each key (columns), and for each
//            head the weights, row by row, as an array of numbers or as a string (see numbers)
// The view opens on the sharpest head, and also offers the mean over the heads of each layer. Call it again to show other data.
(() => {
	const scale = 60000; // a weight of 1 in a string from pack in html.go; 65535 is NaN
	const listed = 10; // number of weights in the chosen token's list
	const least = 0.0005; // smaller weights would show as 0 and aren't listed
	const long = 40; // with more tokens, self-attention has one box of tokens, without lines
	const faint = 0.02; // smaller weights have no line
	const mostLines = 1600; // if a map has more weights, only the chosen token has lines

	const make = (tag, properties, ...children) => {
		const e = document.createElement(tag);
		for (const [name, value] of Object.entries(properties || {})) {
			if (name === 'text') e.textContent = value;
			else e.setAttribute(name, value);
		}
		e.append(...children);
		return e;
	};

	// numbers returns the weights of a head. A string is base64 with two bytes per weight, low byte first.
	const numbers = weights => {
		if (typeof weights !== 'string') return Float32Array.from(weights, w => w ?? NaN);
		const bytes = atob(weights);
		return Float32Array.from({length: bytes.length / 2}, (_, i) => {
			const n = bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1);
			return n === 65535 ? NaN : n / scale;
		});
	};

	// entropy returns the mean entropy of a head's rows. It is NaN if a weight is NaN.
	const entropy = (weights, rows) => weights.reduce((sum, w) => sum - (w === 0 ? 0 : w * Math.log(w)), 0) / rows;

	// mean returns the mean over heads of each weight.
	const mean = heads => heads[0].map((_, i) => heads.reduce((sum, weights) => sum + weights[i], 0) / heads.length);

	// tone returns the strength of a weight's colour. It is the weight's root, because the small weights of 200 tokens must be visible.
	const tone = w => Math.sqrt(Math.min(1, Math.max(0, w || 0)));
	const shown = w => (Number.isNaN(w) ? 'not a number' : w.toFixed(3));
	const shade = (e, w) => {
		e.style.setProperty('--w', tone(w).toFixed(3));
		e.classList.toggle('strong', tone(w) > 0.6);
	};
	const cut = s => { const c = Array.from(s); return c.length > 12 ? c.slice(0, 11).join('') + '…' : s; };
	const within = (i, n) => Math.min(n - 1, Math.max(0, i));

	heed.attention = (element, data) => {
		const layers = data.layers.map(l => ({...l, heads: l.heads.map(numbers), names: l.heads.map((_, j) => `head ${j}`)}));
		let at = {layer: 0, head: 0}; // the chosen map: at first the sharpest head, which has the lowest entropy
		let lowest = Infinity;
		layers.forEach((l, i) => l.heads.forEach((weights, j) => {
			const e = entropy(weights, l.rows.length);
			if (e < lowest) [lowest, at] = [e, {layer: i, head: j}];
		}));
		for (const l of layers.filter(l => l.heads.length > 1)) {
			l.heads.push(mean(l.heads));
			l.names.push('mean of the heads');
		}
		let pinned = {row: layers[at.layer].rows.length >> 1, column: -1}; // the chosen tokens; -1 means none
		let hovered = null; // the tokens under the pointer, or null
		let same = false; // whether one box shows both queries and keys
		const layer = () => layers[at.layer];
		const weight = (row, column) => layer().heads[at.head][row * layer().columns.length + column];
		const ink = () => getComputedStyle(element).getPropertyValue('--cell').split(',').map(Number);

		// The overview: a small map for each head, in a radio button.
		const overview = make('div', {class: 'overview', role: 'radiogroup', 'aria-label': 'heads'});
		const maps = layers.map((l, i) => {
			const buttons = l.names.map((name, j) => {
				const canvas = make('canvas', {width: l.columns.length, height: l.rows.length, class: l.columns.length < 64 ? 'crisp' : ''});
				const button = make('button', {type: 'button', role: 'radio', 'aria-label': `${l.name}, ${name}`}, canvas, make('span', {text: name.replace(/^head | of.*/g, '')}));
				button.addEventListener('click', () => choose(i, j, true));
				return {button, canvas};
			});
			overview.append(make('div', {}, make('p', {class: 'name', text: l.name}), ...buttons.map(b => b.button)));
			return buttons;
		});
		overview.addEventListener('keydown', e => {
			const all = layers.flatMap((l, i) => l.heads.map((_, j) => [i, j]));
			const now = all.findIndex(([i, j]) => i === at.layer && j === at.head);
			const step = {ArrowLeft: -1, ArrowRight: 1}[e.key];
			const jump = {ArrowUp: -1, ArrowDown: 1}[e.key];
			if (step) choose(...all[(now + step + all.length) % all.length], true);
			else if (jump) {
				const to = (at.layer + jump + layers.length) % layers.length;
				choose(to, within(at.head, layers[to].heads.length), true);
			} else return;
			e.preventDefault();
		});

		// The tokens: queries and keys, with lines between them.
		const lines = make('canvas', {class: 'lines', 'aria-hidden': 'true'});
		const sides = ['row', 'column'].map(side => {
			const box = make('div', {class: 'tokens', role: 'listbox', 'aria-orientation': 'horizontal', 'aria-label': side === 'row' ? 'from, the rows' : 'to, the columns'});
			const index = e => [...box.children].indexOf(e.target.closest('[role=option]'));
			const pin = i => update(side === 'row' ? {row: i, column: -1} : {row: -1, column: i}, null);
			box.addEventListener('click', e => { if (index(e) >= 0) pin(index(e)); });
			box.addEventListener('pointerover', e => {
				const i = index(e);
				if (e.pointerType === 'touch' || i < 0) return;
				update(pinned, side === 'row' ? {row: i, column: -1} : {row: pinned.row, column: i});
			});
			box.addEventListener('pointerleave', () => update(pinned, null));
			box.addEventListener('keydown', e => {
				const n = box.children.length;
				const to = {ArrowLeft: index(e) - 1, ArrowUp: index(e) - 1, ArrowRight: index(e) + 1, ArrowDown: index(e) + 1, Home: 0, End: n - 1, Enter: index(e), ' ': index(e)}[e.key];
				if (to === undefined) return;
				e.preventDefault();
				pin(within(to, n));
				box.children[within(to, n)].focus();
			});
			return {side, box, caption: make('p', {class: 'side', text: side === 'row' ? 'from' : 'to'}), labels: null};
		});
		const pair = make('div', {class: 'pair'}, lines, ...sides.flatMap(s => (s.side === 'row' ? [s.caption, s.box] : [s.box, s.caption])));

		const heading = make('h3', {});
		const meaning = make('p', {class: 'meaning'});
		const reading = make('p', {class: 'reading', 'aria-live': 'polite'});
		const list = make('ol', {class: 'weights'});

		// The large map of the chosen head.
		const map = make('canvas', {class: 'map', tabindex: 0, role: 'application'});
		let grid = null; // position and size of the map's cells: {left, top, cell}
		const under = e => {
			const row = Math.floor((e.offsetY - grid.top) / grid.cell);
			const column = Math.floor((e.offsetX - grid.left) / grid.cell);
			return row >= 0 && row < layer().rows.length && column >= 0 && column < layer().columns.length ? {row, column} : null;
		};
		map.addEventListener('pointermove', e => { if (e.pointerType !== 'touch') update(pinned, under(e)); });
		map.addEventListener('pointerleave', () => update(pinned, null));
		map.addEventListener('click', e => { if (under(e)) update(under(e), null); });
		map.addEventListener('keydown', e => {
			const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[e.key];
			if (!move) return;
			e.preventDefault();
			const row = within(Math.max(0, pinned.row) + move[0], layer().rows.length);
			update({row, column: within(Math.max(0, pinned.column) + move[1], layer().columns.length)}, null);
		});
		// choose shows another head.
		function choose(i, j, focus) {
			at = {layer: i, head: j};
			const l = layer();
			pinned = {row: Math.min(pinned.row, l.rows.length - 1), column: Math.min(pinned.column, l.columns.length - 1)};
			maps.flat().forEach(({button}) => { button.setAttribute('aria-checked', 'false'); button.tabIndex = -1; });
			const {button} = maps[i][j];
			button.setAttribute('aria-checked', 'true');
			button.tabIndex = 0;
			if (focus) button.focus();
			for (const s of sides) {
				const labels = s.side === 'row' ? l.rows : l.columns;
				if (s.labels === labels) continue;
				s.labels = labels;
				s.box.replaceChildren(...labels.map((text, k) => make('bdi', {role: 'option', 'aria-label': `${text} (${k})`, text})));
			}
			same = l.rows.length > long && l.rows.join('\0') === l.columns.join('\0');
			pair.classList.toggle('same', same);
			pair.classList.toggle('dense', Math.max(l.rows.length, l.columns.length) > long);
			heading.textContent = `${l.name}, ${l.names[j]}`;
			list.style.minHeight = `${1.5 * Math.min(listed + 1, Math.max(l.rows.length, l.columns.length))}rem`; // the map below stays in its place
			meaning.textContent = l.meaning;
			map.setAttribute('aria-label', `map of ${l.name}, ${l.names[j]}: arrow keys move over its weights`);
			update(pinned, null);
		}

		// update shows the tokens under the pointer, or else the chosen ones.
		function update(pin, hover) {
			[pinned, hovered] = [pin, hover];
			showTokens(hovered || pinned);
			showWeights(hovered || pinned);
			paintLines();
			paintMap();
		}

		// showTokens colours tokens by the chosen row's attention to them, or by their attention to the chosen column.
		function showTokens({row, column}) {
			for (const s of sides) {
				const own = s.side === 'row' ? row : column;
				const first = Math.max(0, s.side === 'row' ? pinned.row : pinned.column);
				[...s.box.children].forEach((token, i) => {
					let w = 0;
					if (row >= 0 && (same || s.side === 'column')) w = weight(row, i);
					if (row < 0 && column >= 0 && s.side === 'row') w = weight(i, column);
					shade(token, w);
					token.setAttribute('aria-selected', String(i === own));
					token.tabIndex = i === first ? 0 : -1;
				});
			}
		}

		// showWeights lists the largest weights of the chosen row or column. It also shows one weight as text: the chosen
		// one, or the largest.
		function showWeights({row, column}) {
			const {rows, columns} = layer();
			const named = (labels, i) => [make('bdi', {text: labels[i]}), make('small', {text: ` (${i})`})];
			const others = row >= 0 ? columns : rows;
			let weights = [];
			if (row >= 0) weights = columns.map((_, i) => [i, weight(row, i)]);
			else if (column >= 0) weights = rows.map((_, i) => [i, weight(i, column)]);
			weights.sort(([i, v], [j, w]) => (w || 0) - (v || 0) || i - j);
			const few = weights.slice(0, listed).filter(([, w]) => !(w < least));
			const rest = weights.slice(few.length);
			list.replaceChildren(...few.map(([i, w]) => {
				const bar = make('i', {});
				bar.style.width = `${100 * Math.min(1, w || 0)}%`;
				const item = make('li', {}, make('span', {}, ...named(others, i)), make('span', {class: 'bar'}, bar), make('data', {value: w, text: shown(w)}));
				item.classList.toggle('chosen', row >= 0 && i === column);
				return item;
			}));
			if (rest.length) list.append(make('li', {class: 'rest', text: `${rest.length} more: ${shown(rest.reduce((sum, [, w]) => sum + w, 0))} in all`}));
			if (weights.length === 0) {
				reading.textContent = 'Choose a token: point at it, tap it, or take the arrow keys. Escape leaves it.';
				return;
			}
			const [from, to] = [row >= 0 ? row : weights[0][0], row >= 0 && column < 0 ? weights[0][0] : column];
			reading.replaceChildren(...named(rows, from), ' → ', ...named(columns, to), `, ${layer().names[at.head]}: `, make('b', {text: shown(weight(from, to))}));
		}

		// sized sets a canvas's size in the screen's pixels, and returns its context.
		const sized = (canvas, width, height) => {
			const ratio = window.devicePixelRatio || 1;
			canvas.width = Math.round(width * ratio);
			canvas.height = Math.round(height * ratio);
			Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
			const context = canvas.getContext('2d');
			context.scale(ratio, ratio);
			return context;
		};

		function paintOverview() {
			const [r, g, b] = ink();
			layers.forEach((l, i) => l.heads.forEach((weights, j) => {
				const context = maps[i][j].canvas.getContext('2d');
				const image = context.createImageData(l.columns.length, l.rows.length);
				weights.forEach((w, k) => image.data.set([r, g, b, Math.round(255 * tone(w))], 4 * k));
				context.putImageData(image, 0, 0);
			}));
		}

		function paintLines() {
			const outer = pair.getBoundingClientRect();
			const context = sized(lines, outer.width, same ? 0 : outer.height);
			if (same) return;
			const {row, column} = hovered || pinned;
			const [from, to] = sides.map(s => [...s.box.children].map(token => {
				const box = token.getBoundingClientRect();
				return {x: (box.left + box.right) / 2 - outer.left, top: box.top - outer.top, bottom: box.bottom - outer.top};
			}));
			const draw = (i, j, strength) => {
				const w = weight(i, j);
				if (!(w >= faint)) return;
				const [a, b] = [from[i].bottom, to[j].top];
				context.globalAlpha = strength * tone(w);
				context.lineWidth = 1 + 3 * w;
				context.beginPath();
				context.moveTo(from[i].x, a);
				context.bezierCurveTo(from[i].x, (a + b) / 2, to[j].x, (a + b) / 2, to[j].x, b);
				context.stroke();
			};
			context.strokeStyle = `rgb(${ink().join()})`;
			const flat = [from, to].every(tokens => tokens.every(t => t.top === tokens[0].top));
			const few = flat && from.length * to.length <= mostLines;
			from.forEach((_, i) => to.forEach((_, j) => {
				const chosen = row >= 0 ? i === row : j === column;
				if (chosen) draw(i, j, 1);
				else if (few) draw(i, j, row < 0 && column < 0 ? 0.7 : 0.2);
			}));
		}

		function paintMap() {
			const {rows, columns} = layer();
			const {row, column} = hovered || pinned;
			const style = getComputedStyle(element);
			const room = map.parentNode.clientWidth;
			if (room === 0) return; // it isn't visible
			let context = map.getContext('2d');
			context.font = `12px ${style.fontFamily}`;
			const widest = labels => Math.max(...labels.map(s => context.measureText(cut(s)).width));
			let left = widest(rows) + 10;
			let cell = Math.min(28, (room - left) / columns.length);
			const labelled = cell >= 11;
			if (!labelled) [left, cell] = [32, (room - 32) / columns.length];
			const font = context.font = `${labelled ? Math.min(12, cell - 2) : 12}px ${style.fontFamily}`;
			const upright = labelled && widest(columns) > cell; // labels are vertical
			const top = upright ? widest(columns) + 10 : 18;
			grid = {left, top, cell};
			const [width, height] = [cell * columns.length, cell * rows.length];
			context = sized(map, left + width + 2, top + height + 2);
			context.font = font;
			context.fillStyle = style.color;
			context.textBaseline = 'middle';
			// Without room for labels, show the number of every nth position.
			const each = labelled ? 1 : [5, 10, 20, 50, 100, 200, 500, 1000].find(n => n * cell >= 40) || 5000;
			const label = (labels, i) => (labelled ? cut(labels[i]) : String(i));
			context.textAlign = 'right';
			for (let i = 0; i < rows.length; i += each) context.fillText(label(rows, i), left - 5, top + (i + 0.5) * cell);
			context.textAlign = upright ? 'left' : 'center';
			for (let i = 0; i < columns.length; i += each) {
				context.save();
				context.translate(left + (i + 0.5) * cell, upright ? top - 5 : top / 2);
				if (upright) context.rotate(-Math.PI / 2);
				context.fillText(label(columns, i), 0, 0);
				context.restore();
			}
			context.imageSmoothingEnabled = cell < 1;
			context.drawImage(maps[at.layer][at.head].canvas, left, top, width, height);
			context.strokeStyle = style.color;
			context.globalAlpha = 0.3;
			context.strokeRect(left, top, width, height);
			context.globalAlpha = 1;
			context.strokeStyle = style.getPropertyValue('--line-1');
			context.lineWidth = 1.5;
			if (row >= 0) context.strokeRect(left, top + row * cell, width, cell);
			if (column >= 0) context.strokeRect(left + column * cell, top, cell, height);
		}

		const legend = make('p', {class: 'legend'}, 'weight ', ...[0.01, 0.1, 0.25, 0.5, 1].map(w => {
			const swatch = make('span', {text: w});
			shade(swatch, w);
			return swatch;
		}));
		const detail = make('div', {class: 'detail'}, make('div', {}, pair, reading, list), make('div', {}, map));
		const hint = make('p', {class: 'hint', text: 'The sharpest head, whose rows have the lowest mean entropy, is shown first.'});
		hint.hidden = maps.flat().length === 1;
		element.replaceChildren(overview, hint, heading, meaning, make('p', {class: 'meaning', text: data.key || ''}), legend, detail);
		element.classList.add('attention');
		paintOverview();
		choose(at.layer, at.head, false);
		detail.addEventListener('keydown', e => { if (e.key === 'Escape') update({row: -1, column: -1}, null); });
		const repaint = () => { paintLines(); paintMap(); };
		new ResizeObserver(repaint).observe(detail);
		const scheme = matchMedia('(prefers-color-scheme: dark)');
		const recolour = () => {
			if (!detail.isConnected) return scheme.removeEventListener('change', recolour); // the element shows other data now
			paintOverview();
			repaint();
		};
		scheme.addEventListener('change', recolour);
	};

	// Show the data that heatmap.Figure has put into the page.
	for (const data of document.querySelectorAll('.attention > script')) heed.attention(data.parentNode, JSON.parse(data.textContent));
})();
