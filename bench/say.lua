-- wrk's script: every request is built once, then sent again and again in random order.
-- The file named on the command line holds the body, then one line of token, handle and room a request.

local requests = {}

function init(args)
  local lines = io.lines(args[1])
  local body = lines()
  for line in lines do
    local token, handle, room = line:match("^([^\t]+)\t([^\t]+)\t([^\t]+)$")
    local headers = {
      ["Authorization"] = "Bearer " .. token,
      ["X-Tyode-Agent"] = handle,
      ["Content-Type"] = "application/json",
    }
    requests[#requests + 1] = wrk.format("POST", "/v1/rooms/" .. room .. "/messages", headers, body)
  end
  math.randomseed(os.time())
end

function request()
  return requests[math.random(#requests)]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '{"operations": %d, "seconds": %.6f, "p50_ms": %.4f, "p99_ms": %.4f, ' ..
    '"failures": {"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d}}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect, errors.read, errors.write, errors.status, errors.timeout
  ))
end
