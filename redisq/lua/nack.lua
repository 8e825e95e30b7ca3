-- redisq nack: gives a lease back: its message is retried first, at once or after a delay.
-- KEYS 1 {prefix}:prio: routes in a cluster, never read
-- ARGV 1 prefix: bytes, not empty
-- ARGV 2 group: bytes, not empty
-- ARGV 3 token: bytes, not empty, not 'parked'
-- ARGV 4 now: ms; empty: the server's clock
-- ARGV 5 delay: ms; 0: due at once, before every group served since; else the group is parked
-- REPLY 1: settled
-- REPLY 0: the token holds no lease
-- ERROR REDISQ_BADARG: an argument is not of its form; nothing was written
-- ERROR WRONGTYPE: the lock is of another type; nothing was written
-- COST O(log N) for N groups in the tier: 4 commands, 6 to park; at most 12
local prefix, group, token, now, delay = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local function bad(argument, form)
  return redis.error_reply('REDISQ_BADARG ' .. argument .. ': ' .. form)
end
if #ARGV ~= 5 then
  return bad('ARGV', 'nack takes 5: prefix, group, token, now, delay')
elseif prefix == '' then
  return bad('prefix', 'must not be empty')
elseif group == '' then
  return bad('group', 'must not be empty')
elseif token == '' or token == 'parked' then
  return bad('token', "must not be empty nor 'parked'")
elseif now ~= '' and now ~= '0' and not (#now < 16 and string.find(now, '^[1-9]%d*$')) then
  return bad('now', 'must be milliseconds, as 0 or [1-9][0-9]{0,14}, or empty')
elseif delay ~= '0' and not (#delay < 16 and string.find(delay, '^[1-9]%d*$')) then
  return bad('delay', 'must be milliseconds, as 0 or [1-9][0-9]{0,14}')
end

local lock, prio = prefix .. ':lock:' .. group, prefix .. ':prio'
if redis.call('GET', lock) ~= token then
  return 0
end
local tier = redis.call('HGET', prio, group)
local known = tier and string.find(tier, '^[0-4]$')
if not known then
  -- The field is missing or spoilt: the lowest tier that knows the group.
  tier = '0'
  for t = 0, 4 do
    if redis.call('ZSCORE', prefix .. ':ready:' .. t, group) then
      tier = tostring(t)
      break
    end
  end
end
local due = '0'
if delay ~= '0' then
  if now == '' then
    local time = redis.call('TIME')
    now = time[1] .. string.sub('00000' .. time[2], -6, -4)
  end
  due = string.format('%.0f', now + delay)
end

redis.call('DEL', lock)
redis.call('ZADD', prefix .. ':ready:' .. tier, due, group)
if not known then
  redis.call('HSET', prio, group, tier)
end
if delay ~= '0' then
  -- Not the token: whoever settled it holds the group no more.
  redis.call('SET', lock, 'parked', 'PX', delay)
end
return 1
