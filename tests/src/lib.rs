//! What the end-to-end tests share: the binary under test, temporary projects, a JSON-RPC client.
