// Command moebalance measures how much inference throughput uneven expert load costs a
// mixture-of-experts model, which layers and ranks cause the loss, and how much balance
// would gain. A file per verb turns flags into one call and the result into a document.
package main

import "os"

func main() {
	ctx := interruptible()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
