package db

import (
	"testing"

	"github.com/echo-node/echo-node/partition/racetest"
)

func TestMain(m *testing.M) { racetest.Main(m, "6") }
