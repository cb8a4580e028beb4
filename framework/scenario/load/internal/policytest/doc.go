// Package policytest makes a scenario of each case of a PolicyTest.
//
// Cases whose objects do not exclude each other share an installation. A policy without a binding gets
// one, a user gets the rights for the request, and no text of the test is a placeholder.
package policytest
