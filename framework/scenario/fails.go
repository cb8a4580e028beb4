package scenario

import (
	"fmt"
	"regexp"
	"strings"
)

// FailsMatcher returns a function that reports whether the log of a server has what
// Server.Fails says: a string, or a regular expression between slashes. The error is not nil
// if the expression does not compile.
func FailsMatcher(fails string) (func(log string) bool, error) {
	if len(fails) > 1 && strings.HasPrefix(fails, "/") && strings.HasSuffix(fails, "/") {
		expression, err := regexp.Compile(fails[1 : len(fails)-1])
		if err != nil {
			return nil, fmt.Errorf("compile the regular expression: %w", err)
		}
		return expression.MatchString, nil
	}
	return func(log string) bool { return strings.Contains(log, fails) }, nil
}
