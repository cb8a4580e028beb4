// Package policytest makes scenarios of a PolicyTest: one with all its cases, or several if objects of the cases
// exclude each other.
//
// A policy without a binding gets
// one, a user gets the rights for the request, and no text of the test is a placeholder.
package policytest
