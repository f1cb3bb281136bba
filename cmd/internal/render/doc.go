// Package render lays a result out as a document: its answer, its notes and its tables, which package output
// writes as text, CSV, Markdown or JSON.
package render
