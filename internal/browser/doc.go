// Package browser tests the pages that heed writes and serves in a real browser: Chromium or Chrome, without a window.
// It is a separate module, so that Heed doesn't depend on the packages that drive the browser.
package browser
