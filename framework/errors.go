package framework

import "errors"

// ErrLost marks errors that mean no answer came from a Target: a connection
// refused or broken. A refusal by the API server is an answer.
var ErrLost = errors.New("no answer from the API server")

// ErrNotSettled marks a wait whose bound was reached: nothing was observed that
// could decide.
var ErrNotSettled = errors.New("the API server did not come to the awaited state")
