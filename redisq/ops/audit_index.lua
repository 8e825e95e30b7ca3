-- redisq audit: looks at the index of a queue, its hash and its five sorted sets; with repair, heals what is wrong.
-- KEYS 1 {prefix}:prio: routes in a cluster
-- ARGV 1 prefix: bytes, not empty
-- ARGV 2 repair: '1' heals, '0' only looks
-- REPLY array: finding, key, finding, key ...; empty: nothing is wrong
-- COST O(1): 12 reads, at most 13 commands with repair
local prefix, repair = ARGV[1], ARGV[2] == '1'
local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6, -4)
local found = {}
for _, name in ipairs({ ':prio', ':ready:0', ':ready:1', ':ready:2', ':ready:3', ':ready:4' }) do
  local key = prefix .. name
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'none' and kind ~= (name == ':prio' and 'hash' or 'zset') then
    found[#found + 1] = 'index-type'
    found[#found + 1] = key
    if repair then
      redis.call('RENAME', key, prefix .. ':aside:' .. now .. name)
    end
  elseif redis.call('PTTL', key) >= 0 then
    found[#found + 1] = 'index-with-ttl'
    found[#found + 1] = key
    if repair then
      redis.call('PERSIST', key)
    end
  end
end
return found
