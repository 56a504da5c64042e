'use strict';
const heed = {};

// heed.data returns the page's data for scripts: the JSON in the element with this id.
heed.data = id => JSON.parse(document.getElementById(id).textContent);

// heed.number formats a number: whole numbers with all digits, others with four significant digits, null as a dash.
heed.number = v => v == null ? '–' : String(Number.isInteger(v) ? v : Number(v.toPrecision(4)));
