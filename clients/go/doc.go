// Package svc is a client of an svc service, for servers: identifications read and checked, webhooks verified, and a
// method for each operation of the API. It needs nothing outside the standard library.
package svc

// Version is that of this library.
const Version = "0.3.0"
