// Package client talks to one API server. It has two kinds of request:
//
//   - Requests under test ([Client.Send]) are sent once, exactly as composed, and
//     every response is a result, whatever its status.
//   - Administrative requests ([Client.Create], [Client.Delete], …) use client-go's
//     dynamic and metadata clients. A refusal is an error, and client-go repeats a
//     request that the server asks to repeat (429, 503 with Retry-After).
//
// It also knows which kinds the server serves ([Resources]).
package client
