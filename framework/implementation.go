package framework

// Implementation describes what a run tests, for published reports. The fields are the same as in
// the conformance reports of Gateway API (https://gateway-api.sigs.k8s.io/concepts/conformance/).
type Implementation struct {
	// Organization is the vendor, Project the product.
	Organization string `json:"organization,omitempty"`
	Project      string `json:"project,omitempty"`
	// Version is the version of the product.
	Version string `json:"version,omitempty"`
	// URL is the address of the product's website.
	URL string `json:"url,omitempty"`
	// Contact has links or addresses for questions about the report.
	Contact []string `json:"contact,omitempty"`
}

// IsZero reports whether no field is set.
func (i Implementation) IsZero() bool {
	return i.Organization == "" && i.Project == "" && i.Version == "" && i.URL == "" && len(i.Contact) == 0
}
