-- The rows of "profilctl report -f rows" in ClickHouse 18.16 or later: see profil-fleet(7).
--
-- The rows of kind 'stack' add up to all samples. Those of kind 'owner' add up to the samples with a place
-- again, by what ran: a query takes one of the two kinds. By this order, rows of a function lie side by
-- side, so that names take next to no room and a query of one object reads little.
CREATE TABLE profil
(
	time DateTime,           -- the start of the interval
	duration Float64,        -- its seconds
	host String,
	kernel String,
	boot String,
	profile String,          -- what was recorded
	event String,            -- 'cpu', 'off-cpu', or as record -e takes it
	kind String,             -- 'stack' or 'owner'
	object String,           -- the file, '[kernel]', or a language
	build_id String,
	function String,         -- the innermost; of an owner of the machine's profile ''
	stack Array(String),     -- the outermost frame first
	command String,          -- from here on: of kind 'owner'
	thread String,
	pid UInt32,
	cgroup String,
	unit String,
	container String,
	container_name String,
	pod String,
	samples UInt64,
	value UInt64             -- ns of time, or events
)
ENGINE = MergeTree
PARTITION BY toDate(time)
ORDER BY (kind, object, function, host, time);
