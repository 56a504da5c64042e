// Package browser tests the pages that heed writes and serves in a real browser: Chromium or Chrome, without a window.
// It is a module of its own, so that what drives the browser is nobody's dependency.
package browser
