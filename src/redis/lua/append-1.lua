#!lua
-- Appends events to the log stream in order, without gaps or repeats. Entries that a consumer group
-- has not acknowledged are not trimmed, unless the stream has five times the entries to keep.
-- KEYS[1]  the stream
-- ARGV     [1] offset that the stream's last entry must have now, or 'empty' if the stream must be
--          empty; [2] number of entries to keep; then for each event: offset, h, b
-- returns  -1 if the events were appended, else the offset of the stream's last entry (0 if empty)
local call, key, most = redis.call, KEYS[1], tonumber(ARGV[2])

local function offset(id) return tonumber(string.match(id, '^(%d+)')) end

local last = call('XREVRANGE', key, '+', '-', 'COUNT', 1)
local at = #last > 0 and offset(last[1][1]) or 0
if ARGV[1] == 'empty' then
  if #last > 0 then return at end
  -- A stream that was emptied by hand would still refuse ids that it once had.
  call('DEL', key)
elseif at ~= tonumber(ARGV[1]) then
  return at
end

for from = 3, #ARGV, 3 do
  local id = ARGV[from] .. '-0'
  local added = redis.pcall('XADD', key, id, 'h', ARGV[from + 1], 'b', ARGV[from + 2])
  if type(added) == 'table' then
    -- Its last entries were deleted, and it refuses ids that it once had: start again.
    call('DEL', key)
    return 0
  end
  at = offset(id)
end

if call('XLEN', key) <= most * 1.1 then return -1 end
local first = at - most + 1
for _, fields in ipairs(call('XINFO', 'GROUPS', key)) do
  local group = {}
  for n = 1, #fields, 2 do group[fields[n]] = fields[n + 1] end
  first = math.min(first, offset(group['last-delivered-id']) + 1)
  if group.pending > 0 then first = math.min(first, offset(call('XPENDING', key, group.name)[2])) end
end
call('XTRIM', key, 'MINID', '~', string.format('%d', math.max(first, at - 5 * most)))
return -1
