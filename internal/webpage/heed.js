'use strict';
const heed = {};

// heed.data returns what a page has for its scripts: the JSON of the element with this id.
heed.data = id => JSON.parse(document.getElementById(id).textContent);

// heed.number returns a number as a reader wants it: with four significant digits, a whole one with all.
heed.number = v => v == null ? '–' : String(Number.isInteger(v) ? v : Number(v.toPrecision(4)));
