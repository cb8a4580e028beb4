package framework

// Sample is one sample of a metric of an API server.
type Sample struct {
	// Labels are the values of the labels, by name.
	Labels map[string]string
	// Value is the value of a counter or gauge. For a histogram it is the number of observations.
	Value float64
	// Buckets are the upper bounds of the buckets of a histogram, in ascending order, without +Inf.
	// Nil for a counter or gauge.
	Buckets []float64
}
