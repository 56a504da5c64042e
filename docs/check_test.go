package docs

import "log"

// check ends an example on an error.
func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
