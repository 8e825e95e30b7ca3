-- redisq claim: leases the free due group of the lowest score and returns its oldest message.
-- KEYS 1 {prefix}:prio: routes in a cluster, never read
-- ARGV 1 prefix: bytes, not empty
-- ARGV 2 now: ms; empty: the server's clock
-- ARGV 3 px: ms, not 0, the visibility
-- ARGV 4 token: bytes, not empty, not 'parked'
-- ARGV 5 K: 1..99, the entries of a page
-- ARGV 6 min_priority: integer, clamped to 0..4
-- REPLY array: group, payload
-- REPLY nil: no group is due and free
-- ERROR REDISQ_BADARG: an argument is not of its form; nothing was written
-- COST O(log N + K) for N groups: 5 commands for one tier, 9 to 17 for five; repair at most 21 pages of K
local prefix, now, px, token, K, min_priority = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local function bad(argument, form)
  return redis.error_reply('REDISQ_BADARG ' .. argument .. ': ' .. form)
end
if #ARGV ~= 6 then
  return bad('ARGV', 'claim takes 6: prefix, now, px, token, K, min_priority')
elseif prefix == '' then
  return bad('prefix', 'must not be empty')
elseif now ~= '' and now ~= '0' and not (#now < 16 and string.find(now, '^[1-9]%d*$')) then
  return bad('now', 'must be milliseconds, as 0 or [1-9][0-9]{0,14}, or empty')
elseif #px > 15 or not string.find(px, '^[1-9]%d*$') then
  return bad('px', 'must be milliseconds, as [1-9][0-9]{0,14}')
elseif token == '' or token == 'parked' then
  return bad('token', "must not be empty nor 'parked'")
elseif not string.find(K, '^[1-9]%d?$') then
  return bad('K', 'must be 1 to 99')
elseif min_priority ~= '0' and not string.find(min_priority, '^%-?[1-9]%d*$') then
  return bad('min_priority', 'must be an integer, as 0 or -?[1-9][0-9]*')
end

local servers_clock = now == ''
if servers_clock then
  local time = redis.call('TIME')
  now = time[1] .. string.sub('00000' .. time[2], -6, -4)
end

-- Looks at one entry: returns its payload if it can be served; nil and the lock's TTL if it is locked;
-- nil alone if it was stale or broken and has been removed. GETEX only reads here, but counts as a write,
-- so that a full server lets the later ones pass. A repeated call raises the error again.
local function look(ready, group)
  local lock, q = prefix .. ':lock:' .. group, prefix .. ':q:' .. group
  local held = redis.pcall('GETEX', lock)
  if type(held) == 'table' then
    local kind = redis.call('TYPE', lock).ok
    if kind == 'string' or kind == 'none' then
      redis.call('GETEX', lock)
    end
  end
  if held then
    local ttl = redis.call('PTTL', lock)
    if ttl >= 0 then
      return nil, ttl
    end
  end
  local payload = redis.pcall('LINDEX', q, '0')
  if type(payload) == 'string' then
    return payload
  elseif payload and redis.call('TYPE', q).ok == 'list' then
    redis.call('LINDEX', q, '0')
  end
  redis.call('HDEL', prefix .. ':prio', group)
  redis.call('ZREM', ready, group)
end

local best -- { group, payload, ready }
local bound, further_pages = now, 16
for t = string.find(min_priority, '^%-') and 0 or math.min(tonumber(min_priority), 4), 4 do
  local ready = prefix .. ':ready:' .. t
  local head = redis.call('ZRANGEBYSCORE', ready, '-inf', bound, 'WITHSCORES', 'LIMIT', '0', '1')
  local group, score = head[1], head[2]
  if group then
    local payload, ttl = look(ready, group)
    local stepped_over, more = ttl and 1 or 0, not payload
    while more do
      local page = redis.call('ZRANGEBYSCORE', ready, '-inf', bound, 'WITHSCORES', 'LIMIT', string.format('%.0f', stepped_over), K)
      local locked = {}
      for i = 1, #page, 2 do
        group, score = page[i], page[i + 1]
        payload, ttl = look(ready, group)
        if payload then
          break
        elseif ttl then
          locked[#locked + 1] = { group, string.format('%.0f', now + ttl + 1) }
        end
      end
      more = not payload and #page == 2 * K
      if more then
        -- A full page with nothing to serve: a client's clock must not move other clients' deadlines.
        for _, entry in ipairs(servers_clock and locked or {}) do
          redis.call('ZADD', ready, entry[2], entry[1])
        end
        stepped_over = servers_clock and stepped_over or stepped_over + #locked
        further_pages = further_pages - 1
        more = further_pages >= 0
      end
    end
    if payload then
      best, bound = { group, payload, ready }, '(' .. score
    end
  end
end
if not best then
  return nil
end
redis.call('SET', prefix .. ':lock:' .. best[1], token, 'PX', px)
redis.call('ZADD', best[3], string.format('%.0f', now + px), best[1])
return { best[1], best[2] }
