"""The two Lua scripts of the hot log. Each is one atomic step of the server.

Keys: the log (a Redis Stream, id `0-(offset+1)`, field `d`) and its meta hash: `fence`, `epoch`, `next`, `closed`,
`run`. The last is the server's run id as the last writer that checked it saw it: a different one at a takeover means
that the end of the log may have been lost after readers saw it, so the epoch changes.
A script that fails for want of memory fails before it wrote anything; writers then rewrite, which skips what is there.
"""

RUN_ID = """
local function run_id()
  local info = redis.pcall('INFO', 'server')
  if type(info) ~= 'string' then return '' end
  return string.match(info, 'run_id:(%w+)') or ''
end
local function id(offset) return '0-' .. string.format('%d', offset + 1) end
"""

OPEN = (
    RUN_ID
    + """
-- ARGV: fence, floor, fresh epoch, seconds until an abandoned log expires
local fence, floor = tonumber(ARGV[1]), tonumber(ARGV[2])
local meta = redis.call('HMGET', KEYS[2], 'fence', 'epoch', 'next', 'run')
local known, epoch, next = tonumber(meta[1]), meta[2], tonumber(meta[3])
if known and known > fence then return {'fenced'} end
local run = run_id()
local tail = {}
if known and next > floor then
  for _, entry in ipairs(redis.call('XRANGE', KEYS[1], id(floor), '+')) do tail[#tail + 1] = entry[2][2] end
  if #tail ~= next - floor then known = nil end
end
if not known then
  redis.call('DEL', KEYS[1])
  epoch, next, tail = ARGV[3], floor, {}
elseif known < fence and meta[4] ~= run then
  epoch = ARGV[3]
end
if next < floor then
  redis.call('DEL', KEYS[1])
  next = floor
end
redis.call('HSET', KEYS[2], 'fence', ARGV[1], 'epoch', epoch, 'next', string.format('%d', next), 'run', run)
redis.call('HDEL', KEYS[2], 'closed')
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('EXPIRE', KEYS[2], ARGV[4])
return {'ok', epoch, next, tail}
"""
)

APPEND = (
    RUN_ID
    + """
-- ARGV: channel, fence, epoch, first offset, '1' to rewrite, fresh epoch, trim below, seconds to expiry, records...
local HEAD = 8
local fence, epoch, first = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local meta = redis.call('HMGET', KEYS[2], 'fence', 'epoch', 'next')
local known, next = tonumber(meta[1]), tonumber(meta[3])
local count, skip = #ARGV - HEAD, 0
if known and known > fence then return {'fenced', ''} end
if ARGV[5] == '1' then
  if known == fence and meta[2] ~= epoch then return {'fenced', ''} end
  if known and known < fence then epoch = ARGV[6] end
  if known ~= fence or next < first then
    redis.call('DEL', KEYS[1])
  else
    skip = next - first
    if skip > count then return {'fenced', ''} end
  end
  redis.call('HSET', KEYS[2], 'fence', ARGV[2], 'epoch', epoch, 'run', run_id())
elseif known ~= fence or meta[2] ~= epoch or next ~= first then
  return {'behind', ''}
end
for i = HEAD + 1 + skip, #ARGV do
  redis.call('XADD', KEYS[1], id(first + i - HEAD - 1), 'd', ARGV[i])
end
redis.call('HSET', KEYS[2], 'next', string.format('%d', first + count))
local below = tonumber(ARGV[7])
if below > 0 then redis.call('XTRIM', KEYS[1], 'MINID', id(below)) end
if below > 0 or ARGV[5] == '1' then
  redis.call('EXPIRE', KEYS[1], ARGV[8])
  redis.call('EXPIRE', KEYS[2], ARGV[8])
end
if skip < count then
  local head = epoch .. ' ' .. string.format('%d', first + skip) .. '\\n'
  redis.call('PUBLISH', ARGV[1], head .. table.concat(ARGV, '\\n', HEAD + 1 + skip))
end
return {'ok', epoch}
"""
)
