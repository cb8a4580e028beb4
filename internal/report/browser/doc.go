// Package browser has the tests of the page of a report in a browser: Chromium, headless. It is another
// module, so that users of admissiontest do not need the library that controls the browser.
//
// Without Chromium the tests are skipped; make test-browser fails instead. The variable
// ADMISSIONTEST_BROWSER names the program, if it is not in PATH.
package browser
