module beeyard/tools

go 1.26
