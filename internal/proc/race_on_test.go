//go:build race

package proc

// raceDetector makes this process larger than what some tests measure.
const raceDetector = true
