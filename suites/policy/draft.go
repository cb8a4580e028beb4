package policy

import (
	"context"
	"errors"
	"fmt"

	"github.com/admissiontest/admissiontest/suites/policy/internal/check"
)

// ErrSubject means that the policies of a Subject cannot be used: a file cannot be read, or the API server refuses a
// policy. [Server.Draft] returns it.
var ErrSubject = check.ErrSubject

// Draft are first cases for a PolicyTest. The zero value has none. The fields are:
//
//	Namespaces  the labels of the namespaces that the cases name, by name
//	Cases       for each kind and operation that the policies match, a request that each policy allows, and one that
//	            each validation denies; of MutatingAdmissionPolicies, creations of objects that they change
//	Missing     what was not found, a line each
type Draft = check.Draft

// Draft finds first cases for the policies of a Subject: it changes what the policies read in the smallest object of each
// kind, until the API server answers as wanted. Only Policies and Given of the Subject are used.
func (s *Server) Draft(ctx context.Context, subject Subject) (Draft, error) {
	read, err := subject.read()
	if err == nil && len(read.List()) == 0 {
		err = errors.New("there is no ValidatingAdmissionPolicy or MutatingAdmissionPolicy")
	}
	if err != nil {
		return Draft{}, fmt.Errorf("%w: %w", ErrSubject, err)
	}
	if err := s.start(ctx); err != nil {
		return Draft{}, err
	}
	return s.started.Draft(ctx, read)
}
