"""Every situation of a scope, explored on the model, and every transition of it, executed on the Lua."""
