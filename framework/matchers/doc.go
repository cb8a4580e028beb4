// Package matchers has gomega matchers over what came back for a Request.
package matchers

import _ "github.com/onsi/gomega/types"
