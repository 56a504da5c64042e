'use strict';
for (const chart of heed.data('curves')) {
	heed.chart(document.getElementById('charts').appendChild(document.createElement('div')), chart);
}
