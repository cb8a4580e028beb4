package hook

// MaxConnections is maxConnections.
const MaxConnections = maxConnections
