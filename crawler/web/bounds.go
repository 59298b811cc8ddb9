package web

// The bounds of the work on one body. Each is checked inside the loop that does the
// work. A body that reaches one is kept as far as it was read, and the bound's name is
// in fetch.Result.Stop, counted as every other reason is. All but extract-time depend on
// the bytes alone, so every peer stops at the same place.
const (
	stopTime       = "extract-time"    // Options.MaxTime
	stopLinks      = "links"           // Options.MaxLinks, Options.MaxEntries, maxLinkBytes, maxRefBytes
	stopText       = "text-size"       // Options.MaxText, maxUnpacked
	stopCharset    = "charset"         // a character set that cannot be read on
	stopTokens     = "html-tokens"     // maxTokens
	stopTags       = "html-tags"       // maxTags
	stopTag        = "html-tag"        // maxToken: the attributes of the tag are left out
	stopAttributes = "html-attributes" // maxAttributes: the rest of the tag is left out
	stopMetaDates  = "html-dates"      // maxMetaDates
	stopData       = "json-ld"         // maxDataBytes, maxDataDepth
	stopXMLTag     = "xml-tag"         // maxXMLTag
	stopXMLText    = "xml-text"        // maxXMLText
	stopXMLDepth   = "xml-depth"       // maxXMLDepth
	stopXMLNames   = "xml-names"       // maxNamespaces, maxXMLName
	stopXMLAttrs   = "xml-attributes"  // maxAttributes
	stopXMLTokens  = "xml-tokens"      // maxXMLTokens
	stopEntries    = "feed-entries"    // Options.MaxLinks, of the entries of a feed
	stopFeed       = "feed-size"       // maxFeed
	stopDates      = "feed-dates"      // maxFeedDates
	stopJSONDepth  = "json-depth"      // maxJSONDepth
	stopJSONValue  = "json-value"      // maxJSONValue
)

const (
	maxTokens       = 2 << 20   // tokens of one HTML page: one for each eight bytes of the largest body
	maxTags         = 8 << 20   // bytes of the tags of one page that begin elements
	maxToken        = 512 << 10 // bytes of one HTML token that are held at once
	maxAttributes   = 256       // attributes of one tag
	maxCrowded      = 2 << 20   // bytes of the tags that have more than some attributes
	maxMetaDates    = 1000      // meta elements that are tried for a date
	maxRel          = 1 << 10   // bytes of a rel
	maxRefBytes     = 4 << 20   // bytes of the references of one page, before they are resolved
	maxDataBytes    = 1 << 20   // bytes of all JSON-LD of one page
	maxHead         = 2 << 10   // bytes that say what an XML document is
	maxXMLTokens    = 3 << 19   // tokens and attributes of one document: a sitemap with all it may have takes a million
	maxXMLTag       = 64 << 10  // bytes of one tag
	maxXMLText      = 4 << 20   // bytes of one text, comment or instruction
	maxXMLDepth     = 128       // elements in each other
	maxNamespaces   = 32        // namespaces declared by the open elements
	maxXMLName      = 1 << 10   // bytes of the name of an element, its namespace included
	maxFeed         = 4 << 20   // bytes of what is taken from a feed
	maxFeedElements = 1 << 16   // elements taken from a feed
	maxFeedParts    = 64        // of one entry: titles, links, dates
	maxFeedMarkup   = 1 << 10   // bytes of a title that is read as HTML
	maxFeedMarkups  = 256 << 10 // bytes of all such titles of a feed
	maxFeedPart     = 16 << 10  // bytes of one of them
	maxFeedDate     = 128       // bytes of a date
	maxFeedDates    = 5_000     // dates of one feed
	maxJSONDepth    = 64        // objects and lists in each other
	maxJSONValue    = 1 << 20   // bytes of one entry of a JSON feed
)

// MaxMemory is the most bytes that judging a body of so many bytes may take, on top of
// the body itself: 16 for each of its bytes, 32 MiB for what does not depend on it (a
// sitemap of a few KiB in gzip has 50,000 entries), never more than 64 MiB. TestMaxMemory
// and TestBadPages hold it against the pages of webtest.
func MaxMemory(body int) int {
	const base, factor, most = 32 << 20, 16, 64 << 20
	if body > (most-base)/factor {
		return most
	}
	return base + factor*max(body, 0)
}
