// work.go - work in Go: "work SECONDS" by itself, "serve SECONDS" as a server under load
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

type row struct {
	Name string
	Sum  string
	Tags []string
}

// A table that is made, sorted, written as JSON and read again.
func work(seed int) int {
	rows := []row{}
	for i := 0; i < 200; i++ {
		name := strconv.Itoa(seed*7919 + i*104729)
		rows = append(rows, row{name, fmt.Sprintf("%x", sha256.Sum256([]byte(name))), strings.Split(name, "1")})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i].Sum < rows[j].Sum })
	text, _ := json.Marshal(rows)
	again := []row{}
	if json.Unmarshal(text, &again) != nil {
		return 0
	}
	return len(again)
}

func cpu() float64 {
	var used syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}

// Four clients at once, each with a connection that it keeps.
func serve(seconds float64) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		fmt.Fprintln(w, work(n))
	}))
	var clients sync.WaitGroup
	for c := 0; c < 4; c++ {
		clients.Add(1)
		go func(c int) {
			defer clients.Done()
			for n := c; cpu() < seconds; n += 4 {
				answer, err := http.Get(server.URL + "/" + strconv.Itoa(n))
				if err != nil {
					panic(err)
				}
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		}(c)
	}
	clients.Wait()
	server.Close()
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[2], 64)
	if err != nil {
		panic(err)
	}
	if os.Args[1] == "serve" {
		serve(seconds)
		return
	}
	for n := 0; cpu() < seconds; n++ {
		work(n)
	}
}
