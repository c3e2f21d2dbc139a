// cgo.go - works in Go and in C, half of the time each
package main

/*
static unsigned long spin_in_c(unsigned long n)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 0; i < n; i++)
		sum += i * i;
	return sum;
}
*/
import "C"

import (
	"os"
	"strconv"
	"time"
)

//go:noinline
func spinInGo(n int) (sum int) {
	for i := 0; i < n; i++ {
		sum += i*i ^ sum>>3
	}
	return
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		panic(err)
	}
	for start := time.Now(); time.Since(start).Seconds() < seconds; {
		spinInGo(1000000)
		C.spin_in_c(1000000)
	}
}
