-- redisq publish: appends one message to the FIFO of its group and indexes the group in its tier.
-- KEYS 1 {prefix}:prio: routes in a cluster, never read
-- ARGV 1 prefix: bytes, not empty
-- ARGV 2 group: bytes, not empty
-- ARGV 3 payload: bytes
-- ARGV 4 priority: integer, clamped to 0..4
-- ARGV 5 score: ms, where a new group starts; empty: the server's clock; absent: 0
-- REPLY integer: messages in the group after the push
-- ERROR REDISQ_BADARG: an argument is not of its form; nothing was written
-- ERROR WRONGTYPE: a key is of another type; no message was stored
-- COST O(log N) for N groups in the tier: 3 commands, 5 for a new group; at most 11
local prefix, group, payload, priority, score = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] or '0'
local function bad(argument, form)
  return redis.error_reply('REDISQ_BADARG ' .. argument .. ': ' .. form)
end
if #ARGV ~= 4 and #ARGV ~= 5 then
  return bad('ARGV', 'publish takes 4 or 5: prefix, group, payload, priority [, score]')
elseif prefix == '' then
  return bad('prefix', 'must not be empty')
elseif group == '' then
  return bad('group', 'must not be empty')
elseif priority ~= '0' and not string.find(priority, '^%-?[1-9]%d*$') then
  return bad('priority', 'must be an integer, as 0 or -?[1-9][0-9]*')
elseif score ~= '' and score ~= '0' and not (#score < 16 and string.find(score, '^[1-9]%d*$')) then
  return bad('score', 'must be milliseconds, as 0 or [1-9][0-9]{0,14}, or empty')
end

local prio, q, ready = prefix .. ':prio', prefix .. ':q:' .. group, prefix .. ':ready:'
local tier = redis.call('HGET', prio, group)
if tier and string.find(tier, '^[0-4]$') then
  -- A known group has its entry; NX brings back only one that was lost.
  redis.call('ZADD', ready .. tier, 'NX', '0', group)
else
  -- The field is missing or spoilt. A group that still has messages stays in the tier that knows it.
  tier = string.find(priority, '^%-') and '0' or string.find(priority, '^[0-4]$') and priority or '4'
  if redis.call('LLEN', q) > 0 then
    for t = 0, 4 do
      if redis.call('ZSCORE', ready .. t, group) then
        tier = tostring(t)
        break
      end
    end
  end
  if score == '' then
    local time = redis.call('TIME')
    score = time[1] .. string.sub('00000' .. time[2], -6, -4)
  end
  redis.call('ZADD', ready .. tier, 'NX', score, group)
  redis.call('HSET', prio, group, tier)
end
-- The message comes last: a refusal before it leaves at worst a stale entry, never a message no claim can reach.
return redis.call('RPUSH', q, payload)
