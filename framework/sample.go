package framework

// Sample is one sample of a metric of an API server.
type Sample struct {
	// Labels are its labels, by name.
	Labels map[string]string
	// Value is the value of a counter or gauge, or the count of a histogram.
	Value float64
}
