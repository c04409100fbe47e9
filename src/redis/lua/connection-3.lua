#!lua
-- Takes one of the connections that all processes share under a name, if one is left.
-- KEYS[1]  the processes: until when each of them counts, in ms
-- KEYS[2]  the connections of the name: how many each process has
-- KEYS[3]  the names that recently had no connection left: when, in ms
-- ARGV     [1] this process; [2] how many connections it has; [3] the limit for all processes;
--          [4] time of the first request in ms, 0 if this is the first; [5] ms for which a process
--          counts; [6] ms to keep the counts; [7] the name
-- returns  1 if taken; 0 if none is left; else the time of the first request: none is left now, but
--          a process that has some may have been killed since that time
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local counts = redis.call('HGETALL', KEYS[2])
local asked = tonumber(ARGV[4])
if asked == 0 then asked = now end
local others, doubtful = 0, false
for n = 1, #counts, 2 do
  if counts[n] ~= ARGV[1] then
    local counts_until = tonumber(redis.call('ZSCORE', KEYS[1], counts[n]) or 0)
    if counts_until < now then
      redis.call('HDEL', KEYS[2], counts[n])
    else
      others = others + tonumber(counts[n + 1])
      if counts_until - tonumber(ARGV[5]) < asked then doubtful = true end
    end
  end
end
local own = tonumber(ARGV[2])
if others + own >= tonumber(ARGV[3]) then
  if doubtful then return asked end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - 5000)
  redis.call('ZADD', KEYS[3], now, ARGV[7])
  redis.call('PEXPIRE', KEYS[3], 5000)
  return 0
end
redis.call('HSET', KEYS[2], ARGV[1], own + 1)
redis.call('PEXPIRE', KEYS[2], ARGV[6])
return 1
