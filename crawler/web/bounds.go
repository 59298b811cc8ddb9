package web

// These are the names of the limits for the work on one body. The loop that does the work checks
// its limit. If a body reaches a limit, the part read so far is kept. The name of the limit is in
// fetch.Result.Stop and is counted like every other reason. All limits except extract-time depend
// on the bytes alone, so every peer stops at the same place.
const (
	stopTime       = "extract-time"    // Options.MaxTime
	stopLinks      = "links"           // MaxLinks, MaxEntries, maxLinkBytes, maxRefBytes
	stopText       = "text-size"       // Options.MaxText, maxUnpacked
	stopCharset    = "charset"         // the text cannot be decoded further
	stopTokens     = "html-tokens"     // maxTokens
	stopTags       = "html-tags"       // maxTags
	stopTag        = "html-tag"        // maxToken: the attributes of the tag are ignored
	stopAttributes = "html-attributes" // maxAttributes: the rest of the tag is ignored
	stopMetaDates  = "html-dates"      // maxMetaDates
	stopData       = "json-ld"         // maxDataBytes, maxDataDepth
	stopXMLTag     = "xml-tag"         // maxXMLTag
	stopXMLText    = "xml-text"        // maxXMLText
	stopXMLDepth   = "xml-depth"       // maxXMLDepth
	stopXMLNames   = "xml-names"       // maxNamespaces, maxXMLName
	stopXMLAttrs   = "xml-attributes"  // maxAttributes
	stopXMLTokens  = "xml-tokens"      // maxXMLTokens
	stopEntries    = "feed-entries"    // Options.MaxLinks, for the entries of a feed
	stopFeed       = "feed-size"       // maxFeed
	stopDates      = "feed-dates"      // maxFeedDates
	stopJSONDepth  = "json-depth"      // maxJSONDepth
	stopJSONValue  = "json-value"      // maxJSONValue
)

const (
	maxTokens       = 2 << 20   // tokens of one HTML page: one per eight bytes of the largest body
	maxTags         = 8 << 20   // bytes of all start tags of one page
	maxToken        = 512 << 10 // bytes of one HTML token that are buffered at once
	maxAttributes   = 256       // attributes of one tag
	maxCrowded      = 2 << 20   // bytes of all tags with many attributes (manyAttributes)
	maxMetaDates    = 1000      // meta elements of one page that are parsed as a date
	maxRel          = 1 << 10   // bytes of a rel attribute
	maxRefBytes     = 4 << 20   // bytes of the references of one page, before they are resolved
	maxDataBytes    = 1 << 20   // bytes of all JSON-LD of one page
	maxHead         = 2 << 10   // first bytes, in which the kind of an XML document is looked for
	maxXMLTokens    = 3 << 19   // tokens and attributes of one document; the largest sitemap has 1M
	maxXMLTag       = 64 << 10  // bytes of one tag
	maxXMLText      = 4 << 20   // bytes of one text, comment or processing instruction
	maxXMLDepth     = 128       // depth of nested elements
	maxNamespaces   = 32        // namespaces that the open elements declare
	maxXMLName      = 1 << 10   // bytes of an element's name, with its namespace
	maxFeed         = 4 << 20   // bytes that are taken from a feed
	maxFeedElements = 1 << 16   // elements that are taken from a feed
	maxFeedParts    = 64        // titles, links and dates of one entry
	maxFeedMarkup   = 1 << 10   // bytes of one title that is parsed as HTML
	maxFeedMarkups  = 256 << 10 // bytes of all such titles of a feed
	maxFeedPart     = 16 << 10  // bytes of one title, link or date
	maxFeedDate     = 128       // bytes of a date
	maxFeedDates    = 5_000     // dates of one feed
	maxJSONDepth    = 64        // depth of nested objects and lists
	maxJSONValue    = 1 << 20   // bytes of one entry of a JSON feed
)

// MaxMemory returns the number of bytes that the judging of a body may allocate at most, on top of
// the body itself. It is 16 for each byte of the body plus 32 MiB, but never more than 64 MiB. The
// 32 MiB are for what does not depend on the body: a gzip sitemap of a few KiB has 50,000 entries.
// TestMaxMemory and TestBadPages check MaxMemory with the pages of webtest.
func MaxMemory(body int) int {
	const base, factor, most = 32 << 20, 16, 64 << 20
	if body > (most-base)/factor {
		return most
	}
	return base + factor*max(body, 0)
}
