-- redisq audit: looks at everything of one group at one instant; with repair, heals what is wrong before it answers.
-- KEYS 1 {prefix}:prio: routes in a cluster
-- ARGV 1 prefix: bytes, not empty
-- ARGV 2 group: bytes, not empty
-- ARGV 3 tolerance: ms by which a score may lie beyond the end of the group's lock
-- ARGV 4 repair: '1' heals, '0' only looks
-- REPLY array: finding, detail, finding, detail ...; empty: nothing is wrong
-- COST O(log N) for N groups: 12 to 14 reads; at most 30 commands with repair, and 2 for each part of the group
--   that is a word of the key space
local prefix, group, tolerance, repair = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == '1'
local lock, q, prio = prefix .. ':lock:' .. group, prefix .. ':q:' .. group, prefix .. ':prio'
local found = {}
local function find(finding, detail)
  found[#found + 1] = finding
  found[#found + 1] = detail
end

-- A group `lock:y` of p has keys that are those of a queue p:q. Where there is such a queue nothing is touched.
local rest, at, looked = ':' .. group, 1, 0
while at do
  local stop = string.find(rest, ':', at + 1, true)
  local part = string.sub(rest, at + 1, stop and stop - 1)
  local inside = stop and (part == 'q' or part == 'lock' or part == 'ready')
  if inside or (not stop and part == 'prio') then
    looked = looked + 1
    for _, family in ipairs({ ':q', ':lock' }) do
      local other = prefix .. family .. string.sub(rest, 1, at - 1)
      if looked > 8 or redis.call('TYPE', other .. ':prio').ok == 'hash' then
        find('collision', other)
        return found
      end
    end
  end
  at = stop
end

local time = redis.call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6, -4)
local function aside(key)
  redis.call('RENAME', key, prefix .. ':aside:' .. now .. string.sub(key, #prefix + 1))
end

local kind, held = redis.call('TYPE', q).ok, redis.call('TYPE', lock).ok
local ttl = redis.call('PTTL', lock)
if kind ~= 'none' and kind ~= 'list' then
  find('list-type', kind)
end
if held ~= 'none' and held ~= 'string' then
  find('lock-type', held)
  ttl = -2 -- it is no lock
end
local endless = held == 'string' and ttl == -1
local messages = kind == 'list' and redis.call('LLEN', q) or 0

local field = redis.call('HGET', prio, group)
local known = field and string.find(field, '^[0-4]$')
local tiers, lowest, score = '', nil, nil
for t = 0, 4 do
  local entry = redis.call('ZSCORE', prefix .. ':ready:' .. t, group)
  if entry then
    tiers = tiers .. t
    lowest = lowest or tostring(t)
    -- Of several entries the one where the field says counts; else that of the lowest tier.
    if not score or field == tostring(t) then
      score = entry
    end
  end
end
local tier = known and field or lowest or '0'

local free, ahead = now + math.max(ttl, 0), false
if messages == 0 then
  if tiers ~= '' and kind == 'none' then
    find('stale-entry', tiers)
  elseif tiers == '' and field then
    find('lone-field', field)
  end
else
  if redis.call('PTTL', q) >= 0 then
    find('list-with-ttl', '')
  end
  if tiers == '' then
    find('no-entry', string.format('%.0f', messages))
  elseif #tiers > 1 then
    find('two-tiers', tiers)
  elseif tiers ~= tier then
    find('wrong-tier', tiers)
  end
  if not known then
    find('no-field', field or '')
  end
  local due = tonumber(score or '0')
  if endless and due > now + 0 and due <= now + 315360000000 then
    free = due -- its lease lasts as long as the score says, ten years at most
  end
  ahead = due > free + 1 + tolerance -- claim itself re-scores a locked group to the millisecond after its lock
  if ahead then
    find('score-ahead', string.format('%.0f', math.min(due - free, 1e15)))
  end
end
if endless then
  find('lock-without-ttl', '')
end
if not repair or #found == 0 then
  return found
end

if kind ~= 'none' and kind ~= 'list' then
  aside(q)
end
if held ~= 'none' and held ~= 'string' then
  aside(lock)
else
  redis.call('GETEX', lock) -- counts as a write, so that a full server lets the later ones pass
end
if messages == 0 then
  redis.call('HDEL', prio, group)
else
  redis.call('PERSIST', q)
  -- The entry comes first and goes last: a refusal in between leaves no message without one.
  if ahead or not score then
    score = string.format('%.0f', free)
  end
  redis.call('ZADD', prefix .. ':ready:' .. tier, score, group)
  redis.call('HSET', prio, group, tier)
end
for t = 0, 4 do
  if messages == 0 or tostring(t) ~= tier then
    redis.call('ZREM', prefix .. ':ready:' .. t, group)
  end
end
if endless then
  -- Without messages, or when the lease is over by its score, nobody holds it.
  local left = messages > 0 and free - now or 0
  if left > 0 then
    redis.call('PEXPIRE', lock, string.format('%.0f', left))
  else
    redis.call('DEL', lock)
  end
end
return found
