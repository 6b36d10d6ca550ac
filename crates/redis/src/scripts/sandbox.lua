-- What scripts see. Run once for each interpreter, with the table `host`, which no script gets.
--
-- host.enter      the server, while a script runs: host.enter(what, ...) (interpreter.rs)
-- host.library    functions of ours in Rust (library.rs)
-- host.thrown     the error of Lua that an error of Rust stands for (thrown.rs)
-- host.killed     why the running script is to end, once it is
local host = ...

local error, type, tostring, pairs = error, type, tostring, pairs
local pcall, xpcall, setmetatable, rawget, rawset = pcall, xpcall, setmetatable, rawget, rawset
local setfenv, loadstring, collectgarbage, unpack = setfenv, loadstring, collectgarbage, unpack
local find, concat, next = string.find, table.concat, next
local READONLY = "Attempt to modify a readonly table"

-- Tables that scripts see and cannot change.
local guarded = setmetatable({}, { __mode = "k" })

local function refuse()
    error(READONLY, 2)
end

local function readonly(of)
    local proxy = setmetatable({}, { __index = of, __newindex = refuse, __metatable = false })
    guarded[proxy] = of
    return proxy
end

-- A script that is to end does not go on behind a pcall. Errors of Rust become those of Lua.
local thrown = host.thrown
local function outcome(ok, ...)
    if host.killed then error(host.killed, 0) end
    if not ok and type((...)) == "userdata" then return false, thrown((...)) end
    return ok, ...
end

local real = {
    assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs,
    pairs = function(of) return pairs(guarded[of] or of) end,
    next = function(of, key) return next(guarded[of] or of, key) end,
    rawequal = rawequal, rawget = function(of, key) return rawget(guarded[of] or of, key) end,
    select = select, tonumber = tonumber, tostring = tostring, type = type, unpack = unpack,
    gcinfo = gcinfo, _VERSION = _VERSION,
    -- As in Redis, an error of a command is its text here.
    pcall = function(...)
        return (function(ok, ...)
            if not ok and type((...)) == "table" then
                local told = rawget((...), "err")
                if type(told) == "string" then return false, told end
            end
            return ok, ...
        end)(outcome(pcall(...)))
    end,
    -- The handler runs behind the error, where hooks run too: an endless one can be ended.
    xpcall = function(called, handler)
        local caught = { outcome(pcall(called)) }
        if caught[1] then return unpack(caught, 1, table.maxn(caught)) end
        local _, told = outcome(pcall(handler, caught[2]))
        return false, told
    end,
    rawset = function(of, key, value)
        if guarded[of] then error(READONLY, 0) end
        return rawset(of, key, value)
    end,
    setmetatable = function(of, meta)
        if guarded[of] then error(READONLY, 0) end
        return setmetatable(of, meta)
    end,
    collectgarbage = function(what)
        if what == "count" then return collectgarbage("count") end
        return 0
    end,
}

-- Names that are none are errors.
local named = setmetatable({}, {
    __index = function(_, name)
        error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
    end,
})
local globals = readonly(named)
for name, value in pairs(real) do named[name] = value end
named._G = globals

-- Only text is compiled: bytecode is not checked by Lua.
local function compile(text, name)
    if type(text) ~= "string" then error("bad argument #1 to 'loadstring' (string expected)", 3) end
    if find(text, "^\27") then return nil, "bytecode is not loaded" end
    local made, why = loadstring(text, name)
    if not made then return nil, why end
    return setfenv(made, globals)
end
named.loadstring = function(text, name) return compile(text, name) end
named.load = function(reader, name)
    local pieces = {}
    while true do
        local piece = reader()
        if piece == nil or piece == "" then break end
        pieces[#pieces + 1] = piece
    end
    return compile(concat(pieces), name or "=(load)")
end

-- Libraries of Lua; what changes tables leaves ours alone.
local tables = {}
for name, called in pairs(table) do tables[name] = called end
for _, name in pairs({ "insert", "remove", "sort", "setn" }) do
    local called = table[name]
    tables[name] = function(of, ...)
        if guarded[of] then error(READONLY, 0) end
        return called(of, ...)
    end
end
math.random = function(...) return host.enter("random", ...) end
math.randomseed = function(seed) return host.enter("seed", seed) end
string.dump = nil
getmetatable("").__metatable = false
local coroutines = {}
for name, called in pairs(coroutine) do coroutines[name] = called end
coroutines.resume = function(...) return outcome(coroutine.resume(...)) end
coroutines.wrap = function(called)
    local made = coroutine.create(called)
    return function(...)
        return (function(ok, ...)
            if not ok then error((...), 0) end
            return ...
        end)(outcome(coroutine.resume(made, ...)))
    end
end
named.string, named.math = readonly(string), readonly(math)
named.table, named.coroutine = readonly(tables), readonly(coroutines)

-- Libraries of ours. redis.call and redis.pcall are put there for each script.
local redis = host.library.redis
for _, name in pairs({ "setresp", "log", "acl_check_cmd" }) do
    redis[name] = function(...) return host.enter(name, ...) end
end
for library, functions in pairs(host.library) do
    named[library] = readonly(functions)
end

host.globals, host.named = globals, named

-- Where the script was, and what was wrong.
local where = host.where
local function on_error(raised)
    local source, line = where()
    if host.killed then return { err = "ERR " .. host.killed, source = source, line = line } end
    local told
    if type(raised) == "userdata" then raised = thrown(raised) end
    if type(raised) == "table" then
        told = rawget(raised, "err")
    else
        told = "ERR " .. tostring(raised)
    end
    return { err = type(told) == "string" and told or "ERR unknown error", source = source, line = line }
end

host.run = function(script) return xpcall(script, on_error) end

-- Libraries of FUNCTION. Their code runs at FUNCTION LOAD, and again in each call of one of their functions: what is in
-- a library's variables does not outlive a call, so that a call depends on its arguments and keys alone.
local registered
local function refused(why) error({ err = "ERR " .. why }) end
local known = { function_name = true, callback = true, flags = true, description = true }
local function asked(count, one, other)
    if count < 1 or count > 2 then refused("wrong number of arguments to redis.register_function") end
    if count == 2 then
        if type(one) ~= "string" and type(one) ~= "number" then
            refused("first argument to redis.register_function must be a string")
        end
        if type(other) ~= "function" then refused("second argument to redis.register_function must be a function") end
        return { function_name = one, callback = other }
    end
    if type(one) ~= "table" then
        refused("calling redis.register_function with a single argument is only applicable to Lua table "
            .. "(representing named arguments).")
    end
    for name in pairs(one) do
        if not known[name] then refused("unknown argument given to redis.register_function") end
    end
    if one.function_name == nil then refused("redis.register_function must get a function name argument") end
    if one.callback == nil then refused("redis.register_function must get a callback argument") end
    if type(one.callback) ~= "function" then
        refused("callback argument given to redis.register_function must be a function")
    end
    if one.flags ~= nil and type(one.flags) ~= "table" then
        refused("flags argument to redis.register_function must be a table representing function flags")
    end
    return one
end
local function register(...)
    local one = asked(select("#", ...), ...)
    local name = tostring(one.function_name)
    if not find(name, "^[%w_]+$") then
        refused("Library names can only contain letters, numbers, or underscores(_) and must be at least one "
            .. "character long")
    end
    if registered[name] then refused("Function already exists in the library") end
    local made = { name = name, callback = one.callback, flags = {}, description = tostring(one.description or "") }
    for place, flag in ipairs(one.flags or {}) do made.flags[place] = tostring(flag) end
    registered[name], registered[#registered + 1] = made, made
end

-- Runs the code of a library, which may register functions and ask nothing of the server.
local function open(library)
    local call, protected = redis.call, redis.pcall
    redis.call, redis.pcall, redis.register_function = nil, nil, register
    registered = {}
    local ok, told = xpcall(library, on_error)
    redis.call, redis.pcall, redis.register_function = call, protected, nil
    local found = registered
    registered = nil
    return ok, told, found
end
host.load = function(library)
    local ok, told, found = open(library)
    if ok then return true, found end
    return false, told
end
host.call = function(library, name, keys, args)
    local ok, told, found = open(library)
    if not ok then return false, told end
    local called = found[name].callback
    return xpcall(function() return called(keys, args) end, on_error)
end
