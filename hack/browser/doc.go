// Package browser tests the HTML page of a report in a browser, headless Chromium. It is a separate
// Go module, so that users of admissiontest do not need the library that controls the browser.
//
// Without Chromium, go test skips the tests, and make test-browser fails. If Chromium is not in
// PATH, set the environment variable ADMISSIONTEST_BROWSER to its path.
package browser
