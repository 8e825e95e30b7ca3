-- redisq ack: settles a lease: removes the message it delivered and frees its group.
-- KEYS 1 {prefix}:prio: routes in a cluster, never read
-- ARGV 1 prefix: bytes, not empty
-- ARGV 2 group: bytes, not empty
-- ARGV 3 token: bytes, not empty, not 'parked'
-- ARGV 4 now: ms; empty: the server's clock
-- REPLY 1: settled
-- REPLY 0: the token holds no lease
-- ERROR REDISQ_BADARG: an argument is not of its form; nothing was written
-- ERROR WRONGTYPE: the lock or the list is of another type; nothing was written
-- COST O(log N) for N groups in the tier: 6 or 7 commands; at most 13
local prefix, group, token, now = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local function bad(argument, form)
  return redis.error_reply('REDISQ_BADARG ' .. argument .. ': ' .. form)
end
if #ARGV ~= 4 then
  return bad('ARGV', 'ack takes 4: prefix, group, token, now')
elseif prefix == '' then
  return bad('prefix', 'must not be empty')
elseif group == '' then
  return bad('group', 'must not be empty')
elseif token == '' or token == 'parked' then
  return bad('token', "must not be empty nor 'parked'")
elseif now ~= '' and now ~= '0' and not (#now < 16 and string.find(now, '^[1-9]%d*$')) then
  return bad('now', 'must be milliseconds, as 0 or [1-9][0-9]{0,14}, or empty')
end

local lock, q, prio = prefix .. ':lock:' .. group, prefix .. ':q:' .. group, prefix .. ':prio'
if redis.call('GET', lock) ~= token then
  return 0
end
local left = redis.call('LLEN', q)
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
local ready = prefix .. ':ready:' .. tier

if left > 1 then
  if now == '' then
    local time = redis.call('TIME')
    now = time[1] .. string.sub('00000' .. time[2], -6, -4)
  end
  -- The lock goes first: a refusal after it can only make the head run again, never pop an undelivered one.
  redis.call('DEL', lock)
  redis.call('LPOP', q)
  redis.call('ZADD', ready, now, group)
  if not known then
    redis.call('HSET', prio, group, tier)
  end
else
  redis.call('DEL', lock)
  redis.call('LPOP', q)
  redis.call('HDEL', prio, group)
  redis.call('ZREM', ready, group)
end
return 1
