package wire

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fieldLimit returns the largest number of elements of a repeated field in one message.
func fieldLimit(name protoreflect.FullName) int {
	switch name {
	case "echonode.wire.v1.Forward.links", "echonode.wire.v1.ForwardAck.answers", "echonode.wire.v1.ForwardAck.reasons",
		"echonode.wire.v1.ForwardAck.moved":
		return MaxLinks
	case "echonode.wire.v1.Query.slices", "echonode.wire.v1.QueryAnswer.missing",
		"echonode.wire.v1.Records.slices", "echonode.wire.v1.RecordsAnswer.whole",
		"echonode.wire.v1.LeaseAnswer.refused",
		"echonode.wire.v1.Copies.slices", "echonode.wire.v1.CopiesAnswer.missing":
		return MaxSlices
	case "echonode.wire.v1.TermStats.df":
		return MaxTerms
	case "echonode.wire.v1.QueryAnswer.hits":
		return MaxHits
	case "echonode.wire.v1.Piece.rows", "echonode.wire.v1.CompareAnswer.rows", "echonode.wire.v1.Unite.rows":
		return MaxRows
	case "echonode.wire.v1.Ship.pieces", "echonode.wire.v1.ShipAnswer.stances":
		return MaxPieces
	case "echonode.wire.v1.Lease.configs", "echonode.wire.v1.LeaseAnswer.newer", "echonode.wire.v1.Ballots.proposals",
		"echonode.wire.v1.BallotsAnswer.promises", "echonode.wire.v1.Configs.decided",
		"echonode.wire.v1.ConfigsAnswer.known":
		return MaxConfigs
	case "echonode.wire.v1.Config.keepers":
		return MaxConfigKeepers
	case "echonode.wire.v1.Config.starts":
		return MaxConfigStarts
	case "echonode.wire.v1.RecordsAnswer.records", "echonode.wire.v1.RecordsAnswer.slices",
		"echonode.wire.v1.RecordsAnswer.parts":
		return MaxRecords
	case "echonode.wire.v1.WhoOwnsAnswer.keepers", "echonode.wire.v1.WhoOwnsAnswer.addrs":
		return MaxPeers
	case "echonode.wire.v1.Copies.prints":
		return MaxPrints
	case "echonode.wire.v1.CopiesAnswer.found":
		return MaxCopies
	case "echonode.wire.v1.Turns.asks", "echonode.wire.v1.TurnsAnswer.answers":
		return MaxTurns
	case "echonode.wire.v1.PeerDescriptor.addrs", "echonode.wire.v1.Invite.addrs":
		return MaxAddrs
	case "echonode.wire.v1.Pass.grants":
		return MaxGrants
	}
	return 0 // a field not listed here may not be repeated; a test checks that all are listed
}

// scan reads the encoding b of a message of type md without allocating per element. It refuses
// the message when a repeated field or the total exceeds its limit: two bytes on the wire can
// become a hundred in memory.
func scan(b []byte, md protoreflect.MessageDescriptor) error {
	left := MaxElements
	return scanMessage(b, md, &left)
}

// scanMessage is scan for one message at any depth. left is how many elements the whole message
// may still have.
func scanMessage(b []byte, md protoreflect.MessageDescriptor, left *int) error {
	var counts map[protowire.Number]int
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %v", ErrMalformed, protowire.ParseError(n))
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(num, typ, b)
		if n < 0 {
			return fmt.Errorf("%w: %v", ErrMalformed, protowire.ParseError(n))
		}
		value := b[:n]
		b = b[n:]
		fd := md.Fields().ByNumber(num)
		// Unknown fields cost no memory per element, so they are not counted.
		if fd == nil {
			continue
		}
		items := elements(fd, typ, value)
		if *left -= items; *left < 0 {
			return over("elements of the message", MaxElements-*left, MaxElements)
		}
		if fd.Cardinality() == protoreflect.Repeated {
			if counts == nil {
				counts = map[protowire.Number]int{}
			}
			counts[num] += items
			if limit := fieldLimit(fd.FullName()); counts[num] > limit {
				return over(string(fd.FullName()), counts[num], limit)
			}
		}
		if fd.Message() != nil && !fd.IsMap() && typ == protowire.BytesType {
			inner, _ := protowire.ConsumeBytes(value)
			if err := scanMessage(inner, fd.Message(), left); err != nil {
				return err
			}
		}
	}
	return nil
}

// elements returns how many items one occurrence of fd holds.
func elements(fd protoreflect.FieldDescriptor, typ protowire.Type, value []byte) int {
	if typ != protowire.BytesType || !fd.IsList() || !packable(fd.Kind()) {
		return 1
	}
	inner, _ := protowire.ConsumeBytes(value)
	items := 0
	for _, c := range inner { // packed: each item is a varint that ends with a byte below 0x80
		if c < 0x80 {
			items++
		}
	}
	return items
}

// packable reports whether the schema has packed fields of kind k. All of them are varints.
func packable(k protoreflect.Kind) bool {
	return k == protoreflect.Uint64Kind || k == protoreflect.EnumKind
}
