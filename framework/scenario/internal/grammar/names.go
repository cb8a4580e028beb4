package grammar

// NamespaceName is the regular expression for the short name of a namespace.
const NamespaceName = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
