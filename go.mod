module github.com/admissiontest/admissiontest

go 1.26.0
