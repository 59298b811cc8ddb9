# Follows every link, obeys robots.txt, keeps nothing. Arguments: file of seeds, requests at once, delay a site in seconds.
import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

delay = float(sys.argv[3])


class Follow(scrapy.Spider):
    name = "follow"
    start_urls = open(sys.argv[1]).read().split()
    links = LinkExtractor()

    def parse(self, response):
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url, self.parse)


process = CrawlerProcess({
    "CONCURRENT_REQUESTS": int(sys.argv[2]) if delay == 0 else 1000,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16 if delay == 0 else 1,
    "DOWNLOAD_DELAY": delay,
    "RANDOMIZE_DOWNLOAD_DELAY": False,
    "ROBOTSTXT_OBEY": True,
    "LOG_LEVEL": "ERROR",
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
})
process.crawl(Follow)
process.start()
