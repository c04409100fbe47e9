#!lua
-- Counts one more connection of a name, whose limit all processes share, if there is room.
-- KEYS[1]  the processes: until when each of them counts, in ms
-- KEYS[2]  the connections of the name: how many each process has
-- ARGV     [1] this process; [2] how many it has; [3] most of all; [4] time of the first attempt
--          in ms, 0 when now; [5] ms for which a process counts; [6] ms to keep the counts
-- returns  1 when counted; 0 when there is no room; else there is none, but a process that has some
--          may be gone, because it has not said since that it lives: the time of the first attempt
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local counts = redis.call('HGETALL', KEYS[2])
local first = tonumber(ARGV[4])
if first == 0 then first = now end
local others, doubtful = 0, false
for n = 1, #counts, 2 do
  if counts[n] ~= ARGV[1] then
    local counts_until = tonumber(redis.call('ZSCORE', KEYS[1], counts[n]) or 0)
    if counts_until < now then
      redis.call('HDEL', KEYS[2], counts[n])
    else
      others = others + tonumber(counts[n + 1])
      if counts_until - tonumber(ARGV[5]) < first then doubtful = true end
    end
  end
end
local own = tonumber(ARGV[2])
if others + own >= tonumber(ARGV[3]) then return doubtful and first or 0 end
redis.call('HSET', KEYS[2], ARGV[1], own + 1)
redis.call('PEXPIRE', KEYS[2], ARGV[6])
return 1
