package framework

// Sample is one sample of a metric of an API server.
type Sample struct {
	// Labels are its labels, by name.
	Labels map[string]string
	// Value is the value of a counter or gauge, or the count of a histogram.
	Value float64
	// Buckets are the upper bounds of the buckets of a histogram, rising, without that of +Inf. Nil if it is
	// none.
	Buckets []float64
}
