package docs

import "log"

// check ends a program of the pages on an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
